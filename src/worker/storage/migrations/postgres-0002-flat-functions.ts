import { statement as admit } from '../postgres-functions/admit-v2.ts'
import { statement as release } from '../postgres-functions/release-v2.ts'
import { statement as settle } from '../postgres-functions/settle-v2.ts'
import { FIX_SEARCH_PATH } from '../postgres-functions/shared-v1.ts'

/**
 * Admission and settlement whose cost does not depend on the number of rows, whenever their plans were made; settlements and
 * releases wait for the disk whatever the database's default is.
 */
export const statements: readonly string[] = [FIX_SEARCH_PATH, admit, settle, release]
