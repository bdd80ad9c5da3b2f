/**
 * Each index of `usage` begins with the customer, so with many customers a settlement writes another page of each. The order of
 * rows finds ranges of times, too, and filters read the rows in it (`usage/page.ts`).
 */
export const statements: readonly string[] = ['usage_time', 'usage_model', 'usage_key'].map(
  (index) => `DROP INDEX IF EXISTS ${index}`,
)
