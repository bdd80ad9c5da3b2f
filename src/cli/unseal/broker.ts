import { z } from 'zod'
import type { SigningKey } from '../../enclave/release/signing-key.ts'
import type { Es256Jwk } from '../../protocol/jwk.ts'
import { createSerialQueue } from '../../protocol/serial-queue.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import { connectGuest, type GuestConnection } from './guest-connection.ts'
import type { Host, HostsFile } from './hosts-file.ts'
import { readBundle } from '../verify/read-input.ts'
import { digestOfConfiguration, readSecretsFile } from './inputs.ts'
import { PositionNotStored, type LedgerPositions } from './ledger-positions.ts'
import { proveGuest, type GuestPolicy } from './prove-guest.ts'
import { unsealOver, type UnsealOutcome } from './unseal-guest.ts'

/** The broker's decision about a host, as one line of its log. Contains no secret. */
export interface Decision {
  readonly host: string
  readonly decision:
    | 'unsealed'
    /** The host's evidence fails a check; no secrets were sent. */
    | 'unproven'
    /** The host refused the unseal document. */
    | 'refused'
    | 'serving'
    /** The host's ledger is at an earlier position than the last known one. */
    | 'ledger_behind'
    | 'unreachable'
  readonly reason?: string
}

export interface BrokerDeps {
  readonly file: Omit<HostsFile, 'hosts'> & { readonly state: string }
  readonly rootJwk: Es256Jwk
  readonly operator: SigningKey
  readonly positions: LedgerPositions
  readonly log: (decision: Decision) => void
}

/**
 * Checks hosts: a sealed one is verified and unsealed, a serving one is verified and its ledger position is read. A
 * decision is logged when it changes; unsealing is always logged. Hosts are checked concurrently: whoever controls a
 * host decides how long its answers take, and must not keep other hosts sealed.
 */
export class Broker {
  readonly #deps: BrokerDeps
  /** For work that reads and replaces a file that all hosts share. */
  readonly #inTurn = createSerialQueue()
  /** The names of the hosts that are being checked. */
  readonly #busy = new Set<string>()
  readonly #last = new Map<string, string>()

  constructor(deps: BrokerDeps) {
    this.#deps = deps
  }

  /** Checks every host that is not being checked already. Resolves once all these checks are done. */
  async lookAtAll(hosts: readonly Host[]): Promise<void> {
    const idle = hosts.filter(({ name }) => !this.#busy.has(name))
    await Promise.all(idle.map((host) => this.#lookAt(host)))
  }

  async #lookAt(host: Host): Promise<void> {
    this.#busy.add(host.name)
    const decision = await this.#decide(host).catch((error: unknown) => ({
      decision: 'unreachable' as const,
      reason: messageOfThrown(error),
    }))
    this.#busy.delete(host.name)
    const text = JSON.stringify(decision)
    const alreadyLogged = this.#last.get(host.name) === text
    this.#last.set(host.name, text)
    if (!alreadyLogged || decision.decision === 'unsealed')
      this.#deps.log({ host: host.name, ...decision })
  }

  async #decide(host: Host): Promise<Omit<Decision, 'host'>> {
    const policy = await this.#policyOf(host)
    const secrets = await readSecretsFile(host.secrets)
    const connection = await connectGuest(host.address)
    try {
      if (await isSealed(connection)) {
        const { operator, positions } = this.#deps
        const ledgerPosition = positions.of(host.name)
        const request = { policy, operator, secrets, ledgerPosition }
        return describe(await unsealOver(connection, request))
      }
      const proof = await proveGuest(connection, policy)
      if (!proof.ok) return { decision: 'unproven', reason: faultsOf(proof.checks) }
      return await this.#compareLedger(host, connection, secrets['ADMIN_TOKEN'] ?? '')
    } finally {
      connection.close()
    }
  }

  async #compareLedger(
    host: Host,
    connection: GuestConnection,
    adminToken: string,
  ): Promise<Omit<Decision, 'host'>> {
    const headers = { authorization: `Bearer ${adminToken}` }
    const { status, body } = await connection.get('/admin/ledger', headers)
    if (status !== 200) {
      return { decision: 'serving', reason: `its ledger position is not known: status ${status}` }
    }
    const { position } = positionSchema.parse(JSON.parse(body.toString('utf8')))
    return this.#inTurn(() => this.#note(host.name, position))
  }

  async #note(host: string, position: number): Promise<Omit<Decision, 'host'>> {
    try {
      const before = await this.#deps.positions.note(host, position)
      if (before === undefined) return { decision: 'serving' }
      const reason = `it is at position ${position}, and was at ${before} before`
      return { decision: 'ledger_behind', reason }
    } catch (error) {
      if (error instanceof PositionNotStored) return { decision: 'serving', reason: error.message }
      throw error
    }
  }

  async #policyOf(host: Host): Promise<GuestPolicy> {
    const { file, rootJwk } = this.#deps
    return {
      rootJwk,
      bundle: file.bundle === undefined ? undefined : await readBundle(file.bundle),
      configurationSha256: await digestOfConfiguration(host.configuration),
      allowSimulated: file.allow_simulated,
      requireCrl: file.require_crl,
      environment: file.environment,
      state: file.state,
      inTurn: (work) => this.#inTurn(work),
    }
  }
}

const positionSchema = z.object({ position: z.int() })
const healthSchema = z.object({ status: z.string() })

async function isSealed(connection: GuestConnection): Promise<boolean> {
  const { body } = await connection.get('/healthz')
  const health = healthSchema.safeParse(JSON.parse(body.toString('utf8')))
  return health.success && health.data.status === 'sealed'
}

function describe(outcome: UnsealOutcome): Omit<Decision, 'host'> {
  if (outcome.kind === 'unsealed') return { decision: 'unsealed' }
  if (outcome.kind === 'refused') {
    return { decision: 'refused', reason: `${outcome.reason}: ${outcome.message}` }
  }
  return { decision: 'unproven', reason: faultsOf(outcome.proof.checks) }
}

function faultsOf(checks: UnsealOutcome['proof']['checks']): string {
  const failed = checks.filter(({ ok }) => !ok)
  return failed.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
}
