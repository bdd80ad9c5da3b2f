import { statement as settle } from '../postgres-functions/settle-v3.ts'
import { FIX_SEARCH_PATH } from '../postgres-functions/shared-v1.ts'

/** Settlement after which a key's counts are those of the latest period. */
export const statements: readonly string[] = [FIX_SEARCH_PATH, settle]
