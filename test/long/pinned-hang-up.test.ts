import { testFamily } from '../faults/family-tests.ts'
import { CARRIED_HANG_UP_FAMILY, PINNED_HANG_UP_FAMILY } from '../faults/hang-up-family.ts'

testFamily(PINNED_HANG_UP_FAMILY)
testFamily(CARRIED_HANG_UP_FAMILY)
