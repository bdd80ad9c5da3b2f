import { testFamily } from '../faults/family-tests.ts'
import { PINNED_FAMILIES } from '../faults/provider-family.ts'

PINNED_FAMILIES.forEach(testFamily)
