import { createServer } from 'node:http'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, crypto as acmeCrypto } from 'acme-client'
import type { ListenAddress } from '../stack/listen-address.ts'
import type { StateDir } from '../stack/state-dir.ts'

/** A certificate authority and the router's account there. */
export interface AcmeAccount {
  /** The authority's directory (RFC 8555 section 7.1.1). */
  readonly directory: string
  readonly email: string | undefined
  /** PEM. It can only order certificates, so it is stored on disk. */
  readonly keyPem: string
}

const ACCOUNT_FILE = 'acme-account.pem'
const CHALLENGE_PATH = '/.well-known/acme-challenge/'

/** Polling of a pending order, ms. */
const POLLING = { backoffMin: 1_000, backoffMax: 20_000, backoffAttempts: 20 }

/** Time limit of an order, ms: longer than polling a slow order takes. The library itself would wait without limit. */
const ORDER_MS = 900_000

/** Reads the account key from this state directory; generates one if there is none. */
export async function acmeAccountKey(state: StateDir): Promise<string> {
  const kept = state.read(ACCOUNT_FILE)
  if (kept !== undefined) return kept
  const made = (await acmeCrypto.createPrivateEcdsaKey('P-256')).toString()
  state.write(ACCOUNT_FILE, made)
  return made
}

/**
 * Orders a certificate by HTTP-01 (RFC 8555 section 8.3). Challenges are answered at `challengeAt` while the order is
 * in progress; port 80 of every domain has to lead there.
 * @returns the chain, PEM, the leaf first
 * @throws Error when the authority refuses, with its reason, or takes too long
 */
export async function orderCertificate(
  account: AcmeAccount,
  csrPem: string,
  challengeAt: ListenAddress,
  limitMs = ORDER_MS,
): Promise<string> {
  const client = new Client({
    directoryUrl: account.directory,
    accountKey: account.keyPem,
    ...POLLING,
  })
  const answers = new Map<string, string>()
  const close = await answerChallenges(answers, challengeAt)
  const done = new AbortController()
  try {
    const order = client.auto({
      csr: csrPem,
      termsOfServiceAgreed: true,
      challengePriority: ['http-01'],
      // Skip the library's own check of the challenge, which would come from inside the domain's network.
      skipChallengeVerification: true,
      challengeCreateFn: async (_authorization, { token }, answer) => {
        // An order that was abandoned must stop here, but not by failing: the library would then deactivate an
        // authorization that the next order may share.
        if (done.signal.aborted) await new Promise(() => {})
        answers.set(token, answer)
      },
      challengeRemoveFn: async (_authorization, { token }) => void answers.delete(token),
      ...(account.email === undefined ? {} : { email: account.email }),
    })
    return await Promise.race([order, tooLong(limitMs, done.signal)])
  } finally {
    done.abort()
    await close()
  }
}

async function tooLong(limitMs: number, signal: AbortSignal): Promise<never> {
  await delay(limitMs, undefined, { signal })
  throw new Error(`the authority did not finish the order within ${limitMs / 1_000} s`)
}

/**
 * Serves only the pending challenges.
 * @returns a function that stops the server
 */
async function answerChallenges(
  answers: ReadonlyMap<string, string>,
  { host, port }: ListenAddress,
): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const answer = path.startsWith(CHALLENGE_PATH)
      ? answers.get(path.slice(CHALLENGE_PATH.length))
      : undefined
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'text/plain' })
    response.end(answer ?? 'not found')
  })
  server.listen(port, host)
  await once(server, 'listening')
  return async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
