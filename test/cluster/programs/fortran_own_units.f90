! SPDX-License-Identifier: BSD-3-Clause
! Each thread opens units of its own, chosen and numbered, and does with them all that is done with units.
program fortran_own_units
  implicit none
  integer, parameter :: files = 24
  integer :: i, unit, value, number, position, error, wrong, chosen(files)
  logical :: is_open
  character(40) :: name
  wrong = 0
  !$omp parallel do private(unit, value, number, position, error, is_open, name) reduction(+ : wrong) schedule(static, 1)
  do i = 1, files
    write (name, '(a, i0)') 'fortran_own_unit_', i
    open (newunit=unit, file=name, status='replace')
    chosen(i) = unit
    write (unit, *) i
    flush (unit)
    call flush (unit)
    inquire (file=name, number=number, opened=is_open)
    if (number /= unit .or. .not. is_open) wrong = wrong + 1
    inquire (unit=unit, number=number, opened=is_open)
    if (number /= unit .or. .not. is_open) wrong = wrong + 1
    rewind (unit)
    read (unit, *) value
    if (value /= i) wrong = wrong + 1
    backspace (unit)
    endfile (unit)
    if (fnum(unit) < 3 .or. isatty(unit)) wrong = wrong + 1
    open (unit=unit, position='append')
    ! Its number may be another thread's unit from here on: OPEN gives it out again.
    close (unit, iostat=error)
    if (error /= 0) wrong = wrong + 1
    open (newunit=value, file='/nonexistent/' // name, iostat=error)
    if (error == 0) wrong = wrong + 1
    open (unit=200 + i, file=name, status='old')
    inquire (file=name, number=number)
    if (number /= 200 + i) wrong = wrong + 1
    close (200 + i, status='delete')
    inquire (unit=200 + i, opened=is_open)
    if (is_open) wrong = wrong + 1
  end do
  ! Closed again, they are main's to open.
  do i = 1, files
    open (unit=200 + i, file='/dev/null')
    write (200 + i, *) i
    close (200 + i)
  end do
  print *, wrong, all(chosen <= -10)
end program fortran_own_units
