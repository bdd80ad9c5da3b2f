import type { Stack } from './stack.ts'

/** How many requests of customers are open, by the metrics; NaN while those cannot be read. */
export async function openRequestsOf({
  local,
  fetch,
}: {
  readonly local: Pick<Stack['local'], 'admin_token'>
  readonly fetch: Stack['fetch']
}): Promise<number> {
  const headers = { authorization: `Bearer ${local.admin_token}` }
  const answer = await fetch('/admin/metrics', { headers })
  return Number(/^cmr_open_requests (\d+)$/m.exec(await answer.text())?.[1])
}
