import { WEBHOOK_EVENTS, type WebhooksConfig } from '../../protocol/webhook-config.ts'
import type { Context } from '../context.ts'
import { StorageUnavailable, type Database } from '../storage/database.ts'
import { dropOld, queueNew, recordAttempt, takeDue, type DueDelivery } from './outbox.ts'
import { sendMessage, type Target } from './send.ts'
import { observe, reportChanges } from './watch.ts'

/** The result of one round. */
export interface RunReport {
  /** Changes that were detected. */
  readonly reported: number
  readonly delivered: number
  /** Failed attempts, including last ones. */
  readonly failed: number
}

/**
 * Runs one round: detects changes, creates deliveries for new events, and attempts those that are due. While the storage is
 * unavailable, sends the report of the outage without storing it.
 */
export async function runWebhooks(context: Context, config: WebhooksConfig): Promise<RunReport> {
  try {
    return await runStored(context, config)
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error
    return reportOutage(context, config)
  }
}

async function runStored(context: Context, config: WebhooksConfig): Promise<RunReport> {
  const { storage, now, newId, watch } = context
  const db = storage.directory()
  const seen = await observe(context, config.bundle_expires_within_hours)
  const run = { instance: watch.id, runId: newId(), now: now() }
  const reported = await reportChanges(db, seen, run)
  const endpoints = Object.entries(config.endpoints).map(([name, { events }]) => {
    return { name, events: events ?? WEBHOOK_EVENTS }
  })
  await queueNew(db, endpoints, now())
  const due = await takeDue(db, now())
  const outcomes = await Promise.all(due.map((one) => attempt(context, db, config, one)))
  await dropOld(db, now())
  watch.endOutage()
  const delivered = outcomes.filter(Boolean).length
  return { reported, delivered, failed: outcomes.length - delivered }
}

async function attempt(
  context: Context,
  db: Database,
  config: WebhooksConfig,
  due: DueDelivery,
): Promise<boolean> {
  const target = targetOf(context, config, due.endpoint)
  const message = { id: due.eventId, body: due.body }
  const result =
    target === undefined
      ? { delivered: false, word: 'not_configured' }
      : await sendMessage(context.sendWebhook, target, message, context.now())
  await recordAttempt(db, due, result, context.now())
  if (!result.delivered) context.log('webhook_failed', { failure: result.word })
  return result.delivered
}

function targetOf(
  { webhookSecrets }: Context,
  config: WebhooksConfig,
  name: string,
): Target | undefined {
  const url = config.endpoints[name]?.url
  const secret = webhookSecrets[name]
  return url === undefined || secret === undefined ? undefined : { url, secret }
}

/** Sends the report of an outage until each endpoint has confirmed it, over as many rounds as that takes. */
async function reportOutage(context: Context, config: WebhooksConfig): Promise<RunReport> {
  const { now, watch } = context
  const { id, seenAt, confirmed } = watch.outage(context)
  const takers = Object.entries(config.endpoints).filter(
    ([name, { events }]) => !confirmed.has(name) && (events?.includes('ledger.failing') ?? true),
  )
  const timestamp = new Date(seenAt).toISOString()
  const data = { fault: 'storage_unavailable' }
  const message = { id, body: JSON.stringify({ type: 'ledger.failing', timestamp, data }) }
  const outcomes = await Promise.all(
    takers.map(async ([name]) => {
      const target = targetOf(context, config, name)
      const result = target && (await sendMessage(context.sendWebhook, target, message, now()))
      if (result?.delivered === true) confirmed.add(name)
      return result?.delivered === true
    }),
  )
  const delivered = outcomes.filter(Boolean).length
  return {
    reported: confirmed.size === delivered ? 1 : 0,
    delivered,
    failed: takers.length - delivered,
  }
}
