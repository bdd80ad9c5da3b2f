import { DAEMON_FAMILY } from './daemon-family.ts'
import { FAILOVER_FAMILY, PINNED_FAILOVER_FAMILY } from './failover-family.ts'
import {
  CARRIED_HANG_UP_FAMILY,
  CROWDED_HANG_UP_FAMILIES,
  HANG_UP_FAMILY,
  PINNED_HANG_UP_FAMILY,
} from './hang-up-family.ts'
import { HOSTILE_FAMILY } from './hostile-family.ts'
import { LIMITS_FAMILY } from './limits-family.ts'
import { PINNED_FAMILIES, PROVIDER_FAMILIES } from './provider-family.ts'
import { STORAGE_FAMILIES } from './storage-family.ts'
import type { AnyFamily } from './trial.ts'

/** The whole matrix. */
export const FAMILIES: readonly AnyFamily[] = [
  ...PROVIDER_FAMILIES,
  ...PINNED_FAMILIES,
  FAILOVER_FAMILY,
  PINNED_FAILOVER_FAMILY,
  HANG_UP_FAMILY,
  PINNED_HANG_UP_FAMILY,
  CARRIED_HANG_UP_FAMILY,
  ...CROWDED_HANG_UP_FAMILIES,
  HOSTILE_FAMILY,
  LIMITS_FAMILY,
  DAEMON_FAMILY,
  ...STORAGE_FAMILIES,
]
