import { PINNED_FAILOVER_FAMILY } from '../faults/failover-family.ts'
import { testFamily } from '../faults/family-tests.ts'

testFamily(PINNED_FAILOVER_FAMILY)
