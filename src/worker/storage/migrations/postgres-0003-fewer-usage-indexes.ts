/**
 * Drops the same indexes as on SQLite: a settlement writes an entry to each index of `usage`. The index by row number also
 * serves ranges of times, and filters read the rows in its order (`usage/page.ts`).
 */
export { statements } from './sqlite-0001-fewer-usage-indexes.ts'
