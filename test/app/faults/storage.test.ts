import { STORAGE_FAMILIES } from '../../faults/storage-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

STORAGE_FAMILIES.forEach(testFamily)
