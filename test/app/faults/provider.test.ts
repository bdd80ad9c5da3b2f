import { PROVIDER_FAMILIES } from '../../faults/provider-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

PROVIDER_FAMILIES.forEach(testFamily)
