/**
 * Each index of `usage` begins with the customer, so with many customers a settlement writes another page of each index. The
 * index by row number also serves ranges of times, and filters read the rows in its order (`usage/page.ts`).
 */
export const statements: readonly string[] = ['usage_time', 'usage_model', 'usage_key'].map(
  (index) => `DROP INDEX IF EXISTS ${index}`,
)
