import { statement as admit } from '../postgres-functions/admit-v2.ts'
import { statement as release } from '../postgres-functions/release-v2.ts'
import { statement as settle } from '../postgres-functions/settle-v2.ts'
import { FIX_SEARCH_PATH } from '../postgres-functions/shared-v1.ts'

/**
 * Admission and settlement whose cost does not grow with the number of rows, however old their query plans are. Settlements
 * and releases wait for the disk whatever the database's default is.
 */
export const statements: readonly string[] = [FIX_SEARCH_PATH, admit, settle, release]
