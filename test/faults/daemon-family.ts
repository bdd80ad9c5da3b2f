import { setTimeout as delay } from 'node:timers/promises'
import { LINK_PATHS } from '../../src/protocol/link.ts'
import type { LinkFault, LinkProxy } from '../support/link-proxy.ts'
import { ask } from './ask.ts'
import { ledgerTextOf } from './ledger.ts'
import { MODEL, openDaemonWorld, type DaemonWorld } from './daemon-world.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'

/** A daemon that is down, slow, malfunctioning or an impostor. Nothing is served without it, and everything recovers with it. */

const ANSWER = '200 stop "Hello from the first."'
const ROW = 'alpha 7+5, receipt'
const UNAVAILABLE = '503 service_unavailable, retry after 2'

/** The worker caches the state of its daemon for a quarter of a second. */
const BELIEF_MS = 400

/** Two requests, one after the other, are answered by then, whatever the daemon does. */
const LATEST_MS = 30_000

interface DaemonFault {
  readonly name: string
  readonly begin: (link: LinkProxy) => Promise<void> | void
  readonly stream: string
  readonly whole: string
  /** What else is seen of the router meanwhile. */
  readonly others: string
}

/** Without any daemon: chat refuses before a provider is asked, the rest serves. */
const WITHOUT = {
  stream: `${UNAVAILABLE} | no row | not asked`,
  whole: `${UNAVAILABLE} | no row | not asked`,
  others: 'attestation 503, health 503, models 200, usage 200, jwks 200',
}

const WITH = {
  stream: `${ANSWER} | ${ROW} | asked`,
  whole: `${ANSWER} | ${ROW} | asked`,
  others: 'attestation 200, health 200, models 200, usage 200, jwks 200',
}

/** The answer was made but cannot be signed: a stream says so, with its row; a whole answer is withheld. */
const UNSIGNED = {
  ...WITH,
  stream: '200 "Hello from the first." then service_unavailable | alpha 7+5, no receipt | asked',
  whole: `${UNAVAILABLE} | no row | asked`,
}

const failing = (path: string, as: LinkFault) => (link: LinkProxy) => link.fail({ path, as })

const FAULTS: readonly DaemonFault[] = [
  { name: 'is down', begin: (link) => link.stopListening(), ...WITHOUT },
  {
    name: 'shows a certificate that is not the pinned one',
    begin: (link) => link.listenAgain('a stranger'),
    ...WITHOUT,
  },
  { name: 'speaks no TLS', begin: (link) => link.listenAgain('plain HTTP'), ...WITHOUT },
  ...(['silent', 'reset', 'garbage', 'wrong form', 'status 500', 'cut'] as const).flatMap(
    (as): DaemonFault[] => [
      {
        name: `is asked anything: ${as}`,
        begin: failing('/', as),
        ...WITHOUT,
      },
      { name: `is asked to sign: ${as}`, begin: failing(LINK_PATHS.sign, as), ...UNSIGNED },
    ],
  ),
  { name: 'takes a second for everything', begin: failing('/', 'slow'), ...WITH },
]

/** The quick ones, one of every kind. */
const SHORT: ReadonlySet<string> = new Set([
  'is down',
  'shows a certificate that is not the pinned one',
  'is asked anything: garbage',
  'is asked to sign: reset',
])

async function asked(world: DaemonWorld, stream: boolean): Promise<string> {
  const customer = await world.newCustomer()
  return chat(world, customer, stream)
}

type Owner = Awaited<ReturnType<DaemonWorld['newCustomer']>>

async function chat(world: DaemonWorld, customer: Owner, stream: boolean): Promise<string> {
  const { length } = world.provider.calls(MODEL)
  const heard = await ask(world, customer, { model: MODEL, stream })
  const calls = world.provider.calls(MODEL).length - length
  return `${heard.words} | ${await ledgerTextOf(world, customer, heard)} | ${calls === 0 ? 'not asked' : 'asked'}`
}

const OTHER_PATHS = {
  attestation: '/attestation',
  health: '/healthz',
  models: '/v1/models',
  usage: '/v1/usage',
  jwks: '/.well-known/jwks.json',
}

async function othersOf(world: DaemonWorld, owner: Owner): Promise<string> {
  const headers = { authorization: `Bearer ${owner.key}` }
  const answers = Object.entries(OTHER_PATHS).map(async ([name, path]) => {
    const answer = await world.stack.fetch(path, { headers })
    await answer.body?.cancel()
    return `${name} ${answer.status}`
  })
  return (await Promise.all(answers)).join(', ')
}

function trialOf({ name, begin, stream, whole, others }: DaemonFault): Trial<DaemonWorld> {
  return {
    name: `a daemon that ${name}`,
    expected: `stream: ${stream}; whole: ${whole}; ${others}; healed: ${WITH.stream}`,
    long: !SHORT.has(name),
    run: async (world) => {
      const customers = [await world.newCustomer(), await world.newCustomer()] as const
      // So that all that is cached was there once, and signing is a message.
      await Promise.all([asked(world, true), othersOf(world, customers[0])])
      await untilMessages(world)
      await begin(world.link)
      await delay(BELIEF_MS)
      const began = performance.now()
      const seen = [
        `stream: ${await chat(world, customers[0], true)}`,
        `whole: ${await chat(world, customers[1], false)}`,
      ]
      const took = performance.now() - began
      seen.push(await othersOf(world, customers[0]))
      world.link.fail(null)
      await world.link.listenAgain('itself')
      await delay(BELIEF_MS)
      seen.push(`healed: ${await asked(world, true)}`)
      const late = took > LATEST_MS ? `, but only after ${Math.round(took)} ms` : ''
      return `${seen.join('; ')}${late}`
    },
  }
}

/** The worker opens its connection for messages beside a call, but not twice within a second. */
async function untilMessages(world: DaemonWorld): Promise<void> {
  while (!world.link.takesMessages()) {
    await delay(BELIEF_MS)
    await asked(world, false)
  }
}

/**
 * The moment after the daemon's end, while the worker still holds what it said a moment ago: the provider of a stream may
 * be asked, but nothing is delivered or billed.
 */
const AT_ONCE: Trial<DaemonWorld> = {
  name: 'a daemon that ends between two requests',
  expected: `stream: ${UNAVAILABLE} | no row; opted out: ${WITHOUT.whole}`,
  run: async (world) => {
    const stream = await askedAtOnce(world, { stream: true })
    const headers = { 'x-service-receipt': 'false' }
    const optedOut = await askedAtOnce(world, { stream: false, headers })
    return `stream: ${stream.seen}; opted out: ${optedOut.seen} | ${optedOut.called}`
  },
}

async function askedAtOnce(
  world: DaemonWorld,
  request: { readonly stream: boolean; readonly headers?: Record<string, string> },
): Promise<{ readonly seen: string; readonly called: string }> {
  const customer = await world.newCustomer()
  await asked(world, true)
  await world.link.stopListening()
  const { length } = world.provider.calls(MODEL)
  const { words } = await ask(world, customer, { model: MODEL, ...request })
  const calls = world.provider.calls(MODEL).length - length
  await world.link.listenAgain('itself')
  await delay(BELIEF_MS)
  const seen = `${words} | ${await ledgerTextOf(world, customer)}`
  return { seen, called: calls === 0 ? 'not asked' : 'asked' }
}

export const DAEMON_FAMILY: AnyFamily = family({
  name: 'daemon faults',
  trials: [...FAULTS.map(trialOf), AT_ONCE],
  atATime: 1,
  open: openDaemonWorld,
  close: (world) => world.close(),
})
