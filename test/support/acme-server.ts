import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import {
  calculateJwkThumbprint,
  decodeProtectedHeader,
  flattenedVerify,
  importJWK,
  type JWK,
} from 'jose'
import { z } from 'zod'
import { listen } from './listen.ts'
import { makeTestAuthority, type TestAuthority } from './test-authority.ts'

/** An ACME server (RFC 8555) for tests: real signatures, nonces and HTTP-01, one account, no wildcards. */
export interface AcmeServer {
  readonly directory: string
  readonly authority: TestAuthority
  /** Certificates issued so far. */
  readonly issued: readonly string[]
  close(): void
}

interface Order {
  readonly names: readonly string[]
  status: 'pending' | 'ready' | 'valid'
  certificate: string
  readonly token: string
}

interface Call {
  readonly path: string
  readonly payload: unknown
  readonly jwk: JWK
}

type Answer = { readonly status: number; readonly body: unknown; readonly location?: string }

const jwsSchema = z.object({ protected: z.string(), payload: z.string(), signature: z.string() })
const headerSchema = z.looseObject({
  nonce: z.string(),
  url: z.string(),
  jwk: z.custom<JWK>().optional(),
  kid: z.string().optional(),
})
const newOrderSchema = z.object({ identifiers: z.array(z.object({ value: z.string() })).min(1) })
const finalizeSchema = z.object({ csr: z.string() })

class Problem extends Error {}

/** @param challengePort what stands for port 80 of every name */
export async function startAcmeServer(challengePort: () => number): Promise<AcmeServer> {
  const authority = await makeTestAuthority()
  const nonces = new Set<string>()
  const orders = new Map<string, Order>()
  const issued: string[] = []
  let accountJwk: JWK | undefined
  let origin = ''

  const describe = (id: string, { names, status }: Order) => ({
    status,
    identifiers: names.map((value) => ({ type: 'dns', value })),
    authorizations: [`${origin}/authz/${id}`],
    finalize: `${origin}/finalize/${id}`,
    ...(status === 'valid' ? { certificate: `${origin}/cert/${id}` } : {}),
  })
  const challengeOf = (id: string, order: Order) => ({
    type: 'http-01',
    url: `${origin}/challenge/${id}`,
    token: order.token,
    status: order.status === 'pending' ? 'pending' : 'valid',
  })

  const validate = async (order: Order, jwk: JWK) => {
    const url = `http://127.0.0.1:${challengePort()}/.well-known/acme-challenge/${order.token}`
    const answer = await (await fetch(url)).text()
    if (answer !== `${order.token}.${await calculateJwkThumbprint(jwk)}`) {
      throw new Problem('the challenge is not answered')
    }
    order.status = 'ready'
  }

  const act = async ({ path, payload, jwk }: Call): Promise<Answer> => {
    const [, what = '', id = ''] = path.split('/')
    if (what === 'account') return { status: 201, body: {}, location: `${origin}/account/1` }
    if (what === 'order' && id === '') {
      const names = newOrderSchema.parse(payload).identifiers.map(({ value }) => value)
      const order: Order = { names, status: 'pending', certificate: '', token: randomUUID() }
      const made = randomUUID()
      orders.set(made, order)
      return { status: 201, body: describe(made, order), location: `${origin}/order/${made}` }
    }
    const order = orders.get(id)
    if (order === undefined) throw new Problem('no such order')
    if (what === 'challenge') await validate(order, jwk)
    if (what === 'finalize') {
      if (order.status !== 'ready') throw new Problem('the order is not ready')
      order.certificate = await authority.sign(finalizeSchema.parse(payload).csr)
      issued.push(order.certificate)
      order.status = 'valid'
    }
    const identifier = { type: 'dns', value: order.names[0] }
    const status = order.status === 'pending' ? 'pending' : 'valid'
    const bodies: Record<string, unknown> = {
      authz: { status, identifier, challenges: [challengeOf(id, order)] },
      challenge: challengeOf(id, order),
      cert: order.certificate,
    }
    return { status: 200, body: bodies[what] ?? describe(id, order) }
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '/'
    const nonce = randomUUID().replaceAll('-', '')
    nonces.add(nonce)
    response.setHeader('replay-nonce', nonce)
    if (path === '/directory') {
      const at = (name: string) => `${origin}/${name}`
      send(response, {
        status: 200,
        body: { newNonce: at('nonce'), newAccount: at('account'), newOrder: at('order'), meta: {} },
      })
    } else if (path === '/nonce') send(response, { status: 200, body: {} })
    else {
      const jws = jwsSchema.parse(JSON.parse(await text(request)))
      const header = headerSchema.parse(decodeProtectedHeader(jws))
      if (!nonces.delete(header.nonce)) throw new Problem('an unknown nonce')
      if (header.url !== origin + path) throw new Problem('signed for another address')
      accountJwk ??= header.jwk
      const jwk = header.jwk ?? accountJwk
      if (jwk === undefined) throw new Problem('no account')
      const { payload } = await flattenedVerify(jws, await importJWK(jwk, 'ES256'))
      const sent = new TextDecoder().decode(payload)
      send(response, await act({ path, payload: sent === '' ? undefined : JSON.parse(sent), jwk }))
    }
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      const detail = error instanceof Error ? error.message : 'unknown'
      send(response, {
        status: 400,
        body: { type: 'urn:ietf:params:acme:error:malformed', detail },
      })
    })
  })
  origin = `http://127.0.0.1:${await listen(server)}`
  return {
    directory: `${origin}/directory`,
    authority,
    issued,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function send(response: ServerResponse, { status, body, location }: Answer): void {
  if (location !== undefined) response.setHeader('location', location)
  const isText = typeof body === 'string'
  response.writeHead(status, {
    'content-type': isText ? 'application/pem-certificate-chain' : 'application/json',
  })
  response.end(isText ? body : JSON.stringify(body))
}
