import { LIMITS_FAMILY } from '../../faults/limits-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

testFamily(LIMITS_FAMILY)
