! SPDX-License-Identifier: BSD-3-Clause
! Role: OpenACC of Fortran on the host: the module openacc, constructs, allocatable arrays.
program openacc_rows
    use openacc
    implicit none
    integer, parameter :: n = 3000
    real(8), allocatable :: x(:), y(:)
    real(8) :: total
    integer :: i, most
    character(len=8) :: name
    allocate (x(n), y(n))
    do i = 1, n
        x(i) = i
    end do
    y = 0
    call acc_init(acc_device_host)
    !$acc data copyin(x) copyout(y)
    !$acc parallel loop
    do i = 1, n
        y(i) = 2*x(i)
    end do
    !$acc end data
    total = 0
    most = 0
    !$acc kernels loop reduction(+:total) reduction(max:most)
    do i = 1, n
        total = total + y(i)
        most = max(most, mod(i*7, 1001))
    end do
    print '(F14.1,1X,I6)', total, most
    call acc_set_device_type(acc_device_host)
    print *, acc_get_num_devices(acc_device_host), acc_get_device_type() == acc_device_host
    call acc_get_property_string(0, acc_device_host, acc_property_name, name)
    print *, name
    call acc_copyin(x)
    call acc_create(y, 8*n)
    print *, acc_is_present(x), acc_is_present(y, 8*n)
    call acc_update_device(x)
    call acc_update_self(x, 80)
    call acc_copyout(x)
    call acc_delete(y)
    call acc_wait_all()
    print *, acc_async_test(1), acc_async_test_all()
    total = 0
    !$omp parallel do reduction(+:total)
    do i = 1, n
        y(i) = y(i) + 1
        total = total + y(i)
    end do
    print '(F14.1)', total
end program openacc_rows
