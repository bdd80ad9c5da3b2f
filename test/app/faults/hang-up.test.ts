import { HANG_UP_FAMILY } from '../../faults/hang-up-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

testFamily(HANG_UP_FAMILY)
