import { HANG_UP_FAMILY } from './hang-up-family.ts'
import { PROVIDER_FAMILIES } from './provider-family.ts'
import type { AnyFamily } from './trial.ts'

/** The whole matrix. */
export const FAMILIES: readonly AnyFamily[] = [...PROVIDER_FAMILIES, HANG_UP_FAMILY]
