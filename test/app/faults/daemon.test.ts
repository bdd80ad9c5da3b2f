import { DAEMON_FAMILY } from '../../faults/daemon-family.ts'
import { testFamily } from '../../faults/family-tests.ts'

testFamily(DAEMON_FAMILY)
