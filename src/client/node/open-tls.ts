import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { getProxyForUrl } from 'proxy-from-env'
import { ClientError } from '../errors.ts'

const CONNECT_TIMEOUT_MS = 15_000

/**
 * Opens a TLS connection to the origin, through the proxy from HTTPS_PROXY and NO_PROXY. Any certificate is accepted:
 * its key is compared with evidence, which proves more than a public authority can.
 * @throws ClientError when the environment names a proxy of another kind (`invalid_options`)
 */
export async function openTls(origin: URL): Promise<TLSSocket> {
  const proxy = proxyFor(origin)
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS)
  const socket = await (proxy === undefined ? openTcp(origin) : openTunnel(origin, proxy, signal))
  const host = hostOf(origin)
  const tls = connectTls({
    socket,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: false,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  // Between requests nothing else listens for errors, and an error without a listener ends the process. The next
  // request sees that the socket is closed.
  tls.on('error', () => {})
  try {
    await once(tls, 'secureConnect', { signal })
  } catch (error) {
    tls.destroy()
    throw error
  }
  return tls.setNoDelay(true)
}

/** The proxy for an origin, from the environment. Errors do not quote its address, which may contain a password. */
function proxyFor(origin: URL): URL | undefined {
  const address = getProxyForUrl(origin.href)
  if (address === '') return undefined
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  if (proxy?.protocol === 'http:' || proxy?.protocol === 'https:') return proxy
  throw new ClientError(
    'invalid_options',
    'the proxy of the environment (HTTPS_PROXY or ALL_PROXY) has no http or https address',
  )
}

function openTcp(origin: URL): Socket {
  return connectTcp({ host: hostOf(origin), port: portOf(origin) })
}

/**
 * Opens a tunnel through a proxy. The proxy sees the name and port of the router, and how much is sent when. It gets
 * the user name and password in its own address, in the clear where the address is plain HTTP: a party between here and
 * the proxy can use them, but can read nothing else.
 */
async function openTunnel(origin: URL, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const { request: send } = proxy.protocol === 'https:' ? https : http
  const target = `${origin.hostname}:${portOf(origin)}`
  const request = send({
    host: hostOf(proxy),
    port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port),
    method: 'CONNECT',
    path: target,
    agent: false,
    signal,
    headers: { host: target, ...credentialsOf(proxy) },
  })
  request.end()
  return new Promise((resolve, reject) => {
    request.once('error', reject)
    request.once('connect', ({ statusCode }: http.IncomingMessage, socket: Socket) => {
      if (statusCode === 200) resolve(socket)
      else {
        socket.destroy()
        reject(new Error(`the proxy answers ${statusCode}`))
      }
    })
    request.once('response', ({ statusCode }: http.IncomingMessage) => {
      request.destroy()
      reject(new Error(`the proxy answers ${statusCode}`))
    })
  })
}

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const text = `${decoded(username)}:${decoded(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` }
}

/**
 * Decodes percent-encoding; text that is not valid percent-encoding is returned unchanged, because many passwords
 * contain a bare percent sign.
 */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function portOf({ port }: URL): number {
  return port === '' ? 443 : Number(port)
}
