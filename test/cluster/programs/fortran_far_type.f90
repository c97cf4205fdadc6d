! SPDX-License-Identifier: BSD-3-Clause
! A type that writes itself, to a unit that another thread has opened: refused where that is another node's.
module written_by_itself
  implicit none
  type pair
    integer :: a, b
  contains
    procedure :: write_pair
    generic :: write (formatted) => write_pair
  end type pair
contains
  subroutine write_pair(this, unit, kind, list, status, message)
    class(pair), intent(in) :: this
    integer, intent(in) :: unit, list(:)
    character(*), intent(in) :: kind
    integer, intent(out) :: status
    character(*), intent(inout) :: message
    write (unit, '(i0, a, i0)', iostat=status, iomsg=message) this%a, kind(1:1), this%b
  end subroutine write_pair
end module written_by_itself

program fortran_far_type
  use omp_lib
  use written_by_itself
  implicit none
  open (20, status='scratch')
  write (20, *) pair(1, 2)
  !$omp parallel
  if (omp_get_thread_num() == omp_get_num_threads() - 1) write (20, *) pair(3, 4)
  !$omp end parallel
  print *, 'not reached on several nodes'
end program fortran_far_type
