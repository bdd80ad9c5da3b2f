import { testFamily } from '../faults/family-tests.ts'
import { PINNED_FAMILY } from '../faults/provider-family.ts'

testFamily(PINNED_FAMILY)
