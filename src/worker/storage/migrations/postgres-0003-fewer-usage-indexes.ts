/**
 * As on SQLite: a settlement writes an entry of each index of `usage`. The order of rows finds ranges of times, too, and filters
 * read the rows in it (`usage/page.ts`).
 */
export { statements } from './sqlite-0001-fewer-usage-indexes.ts'
