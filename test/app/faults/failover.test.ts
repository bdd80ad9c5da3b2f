import { FAILOVER_FAMILY } from '../../faults/failover-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

testFamily(FAILOVER_FAMILY)
