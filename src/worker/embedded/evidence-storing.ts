import { insertEvidence } from '../settle/settle-sql.ts'
import type { EvidenceCall, LedgerCall, LedgerOutcome } from '../storage/ledger-calls.ts'
import { runBatches } from '../storage/sqlite-batches.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import type { Accounts } from './accounts.ts'

/**
 * Stores evidence that arrived together in one transaction. Never throws.
 *
 * It writes to the tables directly, without a fold before and without forgetting accounts after, because each new piece is
 * stored once for every customer. This is safe: like a fold, it only adds a row or extends its retention, and whichever of
 * the two comes first, the later expiry stays.
 */
export async function storeEvidence(
  store: SyncStore,
  accounts: Accounts,
  calls: readonly EvidenceCall[],
): Promise<ReadonlyMap<LedgerCall, LedgerOutcome>> {
  if (calls.length === 0) return new Map()
  const answers = await runBatches(
    store,
    calls.map(({ evidence }) => [insertEvidence(evidence)]),
  )
  const outcomes = new Map<LedgerCall, LedgerOutcome>()
  for (const [index, call] of calls.entries()) {
    const outcome = answers[index]?.outcome
    if (outcome === undefined) continue
    if (outcome.ok) accounts.noteEvidence(call.evidence)
    outcomes.set(call, outcome.ok ? { ok: true, kind: 'evidence' } : outcome)
  }
  return outcomes
}
