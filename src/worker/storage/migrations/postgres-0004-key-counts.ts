import { statement as settle } from '../postgres-functions/settle-v3.ts'
import { FIX_SEARCH_PATH } from '../postgres-functions/shared-v1.ts'

/** A settlement function that keeps a key's counts in the latest period (`settle-v3.ts`). */
export const statements: readonly string[] = [FIX_SEARCH_PATH, settle]
