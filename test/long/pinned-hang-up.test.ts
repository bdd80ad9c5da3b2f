import { testFamily } from '../faults/family-tests.ts'
import { PINNED_HANG_UP_FAMILY } from '../faults/hang-up-family.ts'

testFamily(PINNED_HANG_UP_FAMILY)
