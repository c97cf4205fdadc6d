! SPDX-License-Identifier: BSD-3-Clause
! Units that another thread has opened, used in all ways: items of each kind, lists of names, ends of files, positions.
program fortran_far_units
  use omp_lib
  implicit none
  type point
    integer :: n
    real(8) :: x(3)
  end type
  integer :: i, j, k, ios, wrong, got, total, nu
  integer :: values(10)
  real(8) :: r, rr, big(50000), back(50000)
  complex(8) :: z
  logical :: l, is_open
  character(len=20) :: word, name, ww
  character(len=60) :: msg
  type(point) :: pt
  namelist /conf/ k, r, values, word
  wrong = 0
  open(20, file='fortran_far_unit_20', status='replace')
  open(newunit=nu, file='fortran_far_unit_new', status='replace')
  open(30, file='fortran_far_unit_30', form='unformatted', access='stream', status='replace')
  open(40, file='fortran_far_unit_40', form='unformatted', access='direct', recl=8, status='replace')
  open(50, file='fortran_far_unit_50', status='replace')
  !$omp parallel do schedule(static,1) private(z, pt)
  do i = 1, 16
    !$omp critical
    z = cmplx(i, -i, 8); pt = point(i, [1d0, 2d0, 3d0] * i)
    write(20, '(I4,F8.2,L2,1X,A,2F7.2)') i, i * 1.5d0, mod(i,2) == 0, 'word', z
    write(nu, *) i, i * 2, pt
    write(50, *) i, (j, j = 1, mod(i, 3))
    !$omp end critical
    write(40, rec=i) real(i, 8)
  end do
  big = [(real(i, 8), i = 1, 50000)]
  !$omp parallel
  !$omp single
  write(30) big
  write(30) 7
  flush(30)
  !$omp end single
  !$omp end parallel
  rewind(20); rewind(nu); rewind(30)
  total = 0
  !$omp parallel private(i, j, rr, l, ww, z, ios, msg, pt) reduction(+:total, wrong)
  do
    !$omp critical
    read(20, '(I4,F8.2,L2,1X,A4,2F7.2)', iostat=ios, iomsg=msg) i, rr, l, ww, z
    !$omp end critical
    if (ios /= 0) exit
    if (rr /= i * 1.5d0 .or. ww /= 'word' .or. real(z) /= i .or. (l .neqv. mod(i,2) == 0)) wrong = wrong + 1
    total = total + i
  end do
  do
    !$omp critical
    read(nu, *, iostat=ios) i, j, pt
    !$omp end critical
    if (ios /= 0) exit
    if (j /= 2 * i .or. pt%n /= i .or. pt%x(3) /= 3 * i) wrong = wrong + 1
    total = total + 1000
  end do
  !$omp end parallel
  !$omp parallel do private(rr) reduction(+:wrong) schedule(static,1)
  do i = 1, 16
    read(40, rec=i) rr
    if (rr /= i) wrong = wrong + 1
  end do
  back = 0
  !$omp parallel
  !$omp single
  read(30) back
  read(30) got
  inquire(20, opened=is_open, name=name)
  if (.not. is_open .or. name /= 'fortran_far_unit_20') wrong = wrong + 10000
  backspace(50)
  !$omp end single
  !$omp end parallel
  print '(I0,1X,I0,1X,L1,1X,I0)', wrong, total, all(back == big), got
  k = 5; r = 2.5d0; values = [(i, i = 1, 10)]; word = 'named'
  !$omp parallel
  !$omp masked
  backspace(20)
  write(20, nml=conf)
  !$omp end masked
  !$omp barrier
  if (omp_get_thread_num() == omp_get_num_threads() - 1) then
    rewind(20)
    do i = 1, 16
      read(20, *)
    end do
    k = 0; r = 0; values = 0; word = ''
    read(20, nml=conf)
    close(20, status='delete')
    open(20, file='fortran_far_unit_20b', status='replace')
    write(20, '(A)') 'by the last'
  end if
  !$omp end parallel
  print '(I0,1X,F0.1,1X,I0,1X,A)', k, r, sum(values), word
  rewind(20)
  read(20, '(A)') msg
  print '(A)', trim(msg)
  close(20, status='delete')
  close(nu, status='delete')
  close(30, status='delete')
  close(40, status='delete')
  close(50, status='delete')
end program fortran_far_units
