import { toBase64Url, toHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import { sha256Of } from './synthetic-intel.ts'

/** A stand-in for NVIDIA's verification service, with a key of its own. */
export interface SyntheticNvidia {
  readonly jwks: string
  /** The verdict on this many devices; `changes` overrides claims of all tokens. */
  verdict(of: VerdictOf): Promise<string>
}

export interface VerdictOf {
  readonly nonce: string
  readonly now: number
  readonly devices?: number
  readonly overall?: Readonly<Record<string, unknown>>
  readonly device?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  /** Signs with a key that the set does not hold. */
  readonly forged?: boolean
  /** Replaces a device token after the overall one named it. */
  readonly swapped?: boolean
}

const SCHEME = { name: 'ECDSA', namedCurve: 'P-384' }
const ISSUER = 'https://nras.attestation.nvidia.com'

export async function makeSyntheticNvidia(): Promise<SyntheticNvidia> {
  const pair = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const other = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  return {
    jwks: JSON.stringify({ keys: [{ kid: 'nv-1', kty, crv, x, y, alg: 'ES384', use: 'sig' }] }),
    async verdict(of) {
      const key = (of.forged ? other : pair).privateKey
      const times = {
        iss: ISSUER,
        nbf: Math.floor(of.now / 1000),
        exp: Math.floor(of.now / 1000) + 3600,
        eat_nonce: of.nonce,
      }
      const sign = (claims: object) =>
        signToken(claims, { alg: 'ES384', kid: 'nv-1', ...of.header }, key)
      const devices: Record<string, string> = {}
      const submods: Record<string, unknown> = {}
      for (let index = 0; index < (of.devices ?? 1); index++) {
        const token = await sign({
          ...DEVICE,
          ueid: String(478_176_379 + index),
          ...times,
          ...of.device,
          index,
        })
        devices[`GPU-${index}`] = token
        submods[`GPU-${index}`] = ['DIGEST', ['SHA-256', toHex(sha256Of(utf8(token)))]]
      }
      if (of.swapped) devices['GPU-0'] = await sign({ ...DEVICE, ...times, swapped: true })
      const overall = { 'x-nvidia-overall-att-result': true, submods, ...times, ...of.overall }
      return JSON.stringify([['JWT', await sign(overall)], devices])
    },
  }
}

const DEVICE = {
  dbgstat: 'disabled',
  secboot: true,
  measres: 'success',
  hwmodel: 'GH100 A01 GSP BROM',
  'x-nvidia-gpu-driver-version': '550.90.07',
}

async function signToken(claims: object, header: object, key: CryptoKey): Promise<string> {
  const input = [header, claims].map((part) => toBase64Url(utf8(JSON.stringify(part)))).join('.')
  const bytes: Bytes = utf8(input)
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-384' }, key, bytes)
  return `${input}.${toBase64Url(new Uint8Array(signature))}`
}
