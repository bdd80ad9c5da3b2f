import { testFamily } from '../faults/family-tests.ts'
import { CROWDED_HANG_UP_FAMILIES } from '../faults/hang-up-family.ts'

CROWDED_HANG_UP_FAMILIES.forEach(testFamily)
