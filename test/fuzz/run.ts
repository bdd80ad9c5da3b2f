import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { openRequestsOf } from '../support/open-requests.ts'
import { becomesTrue, startStack, type Stack } from '../support/stack.ts'
import { requests } from './requests.ts'
import { startSoundProvider } from './sound-provider.ts'
import { faultsOf } from './verdict.ts'
import { sendOverWire, type Target } from './wire-request.ts'

/** How much to generate, and from which seed: the same seed makes the same requests. */
export interface FuzzPlan {
  readonly requests: number
  readonly seed: number
  readonly progress?: (done: number) => void
}

/** What a run has shown. It has passed when there are no faults. */
export interface FuzzReport {
  readonly faults: readonly string[]
  /** Answers by kind of request and status. */
  readonly answers: ReadonlyMap<string, number>
  /** How many requests got as far as the provider. */
  readonly reachedProvider: number
}

const AT_A_TIME = 20
const UPSTREAM = 'upstream/model'
const MAX_FAULTS = 20

/** Sends generated requests to the real stack, twenty at a time, until there are enough or one goes wrong. */
export async function fuzz({ requests: total, seed, progress }: FuzzPlan): Promise<FuzzReport> {
  const provider = await startSoundProvider(UPSTREAM)
  const stack = await startStack({ config: config(provider.port) })
  try {
    const target = await newTarget(stack)
    const answers = new Map<string, number>()
    const faults: string[] = []
    let done = 0
    const batch = fc.array(requests(stack.local.admin_token), {
      minLength: AT_A_TIME,
      maxLength: AT_A_TIME,
    })
    const property = fc.asyncProperty(batch, async (generated) => {
      const found = await Promise.all(
        generated.map(async (request) => {
          const answer = await sendOverWire(target, request)
          const key = `${request.kind} ${answer.status}`
          answers.set(key, (answers.get(key) ?? 0) + 1)
          return faultsOf(request, answer)
        }),
      )
      faults.push(...found.flat())
      progress?.((done += generated.length))
      if (faults.length >= MAX_FAULTS) throw new Error('enough has gone wrong')
    })
    const rounds = Math.ceil(total / AT_A_TIME)
    const outcome = await fc.check(property, { seed, numRuns: rounds, endOnFailure: true })
    if (outcome.failed && faults.length === 0) faults.push(String(outcome.errorInstance))
    faults.push(...provider.complaints.slice(0, MAX_FAULTS), ...(await aftermath(stack, target)))
    return { faults, answers, reachedProvider: provider.calls }
  } finally {
    await stack.stop()
    await provider.close()
  }
}

const customerSchema = z.object({ id: z.string() })
const keySchema = z.object({ key: z.string() })

/** A customer whose money does not run out. */
async function newTarget({ local }: Stack): Promise<Target & { readonly customerId: string }> {
  const admin = new AdminApi(local.base_url, local.admin_token)
  const customer = { name: 'fuzz', billing: 'postpaid' }
  const { id } = customerSchema.parse(await admin.call('POST', '/admin/customers', customer))
  const path = `/admin/customers/${id}/keys`
  const { key } = keySchema.parse(await admin.call('POST', path, { name: 'fuzz' }))
  const port = Number(new URL(local.base_url).port)
  return { port, authorization: `Bearer ${key}`, customerId: id }
}

const reservedSchema = z.object({ reserved_eur: z.string() })

/** What must hold at the end: the same processes, no open request, nothing reserved, no unknown error. */
async function aftermath(stack: Stack, { customerId }: { customerId: string }): Promise<string[]> {
  const { base_url: baseUrl, admin_token: token, pids } = stack.local
  const admin = new AdminApi(baseUrl, token)
  const reserved = async () => {
    const customer = await admin.call('GET', `/admin/customers/${customerId}`)
    return Number(reservedSchema.parse(customer).reserved_eur)
  }
  await becomesTrue(async () => (await openRequestsOf(stack)) === 0 && (await reserved()) === 0)
  const log = readFileSync(join(stack.stateDir, 'log/worker.log'), 'utf8')
  const internal = [...new Set(log.match(/"code":"internal","error":"\w+"/g))]
  const now = stack.localNow().pids
  const healthy = (await stack.fetch('/healthz')).status === 200
  return [
    ...(now.worker === pids.worker ? [] : ['the worker has crashed']),
    ...(now.enclave === pids.enclave ? [] : ['the daemon has crashed']),
    ...(healthy ? [] : ['the router is not healthy']),
    ...((await openRequestsOf(stack)) === 0
      ? []
      : [`${await openRequestsOf(stack)} requests are still open`]),
    ...((await reserved()) === 0 ? [] : [`${await reserved()} EUR are still reserved`]),
    ...internal.map((line) => `the worker’s log has ${line}`),
  ]
}

function route(more: object): object {
  return {
    provider: 'alpha',
    upstream_model: UPSTREAM,
    type: 'chat',
    pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
    ...more,
  }
}

function config(port: number): object {
  const efforts = { off: { thinking: false }, high: { thinking: true } }
  const audio = { currency: 'eur', billing_unit: 'audio_minute', unit_amount: 0.006 }
  return {
    service: { name: 'router', mode: 'local', auto: ['glm'] },
    providers: {
      alpha: { base_url: `http://127.0.0.1:${port}/v1`, attestation: { adapter: 'none' } },
    },
    routes: [
      route({ model_key: 'glm', region: 'eu', reasoning: { default_effort: 'high', efforts } }),
      route({ model_key: 'glm', region: 'us' }),
      route({ model_key: 'ocr', ocr: true }),
      route({ model_key: 'whisper', type: 'transcription', pricing: audio }),
    ],
  }
}
