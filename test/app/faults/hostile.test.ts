import { HOSTILE_FAMILY } from '../../faults/hostile-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

testFamily(HOSTILE_FAMILY)
