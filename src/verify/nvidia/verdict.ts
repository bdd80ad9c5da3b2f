import * as z from 'zod'
import { toHex, utf8 } from '../../protocol/bytes.ts'
import { parseCompactJws, verifyJwsSignature, type CompactJws } from '../../protocol/compact-jws.ts'
import { sha256 } from '../../protocol/digest.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { PARTIES_DIFFER_MS } from '../clock.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/** The statements of NVIDIA's remote attestation service. */
export interface GpuVerdict {
  readonly devices: number
  readonly models: readonly string[]
  readonly drivers: readonly string[]
  /** When the first of its tokens expires, in milliseconds since 1970. */
  readonly endsAt: number
}

export interface GpuExpectation {
  /** 64 lowercase hex digits, the same as in the CPU's quote. */
  readonly nonce: string
  /** Number of devices in the evidence. */
  readonly devices: number
  /** Milliseconds. */
  readonly now: number
}

const ISSUER = 'https://nras.attestation.nvidia.com'
const DOCUMENT = 'GPU verdict'

/** `[["JWT", overall], {"GPU-0": jwt, ...}]`: an EAT with detached claims (RFC 9711 section 5). */
const detachedSchema = z.tuple([
  z.tuple([z.literal('JWT'), z.string()]),
  z.record(z.string(), z.string()),
])

const keySetSchema = z.looseObject({
  keys: z.array(
    z.looseObject({
      kid: z.string(),
      kty: z.string(),
      crv: z.string().optional(),
      x: z.string().optional(),
      y: z.string().optional(),
    }),
  ),
})
type KeySet = z.output<typeof keySetSchema>

const timesSchema = {
  iss: z.literal(ISSUER),
  exp: z.number(),
  nbf: z.number(),
  eat_nonce: z.string(),
}

const overallSchema = z.looseObject({
  ...timesSchema,
  'x-nvidia-overall-att-result': z.literal(true),
  submods: z.record(
    z.string(),
    z.tuple([z.literal('DIGEST'), z.tuple([z.literal('SHA-256'), z.string()])]),
  ),
})

const deviceSchema = z.looseObject({
  ...timesSchema,
  dbgstat: z.literal('disabled'),
  secboot: z.literal(true),
  measres: z.literal('success'),
  /** The device's identity (RFC 9711 section 4.2.1); NVIDIA uses a decimal number. */
  ueid: z.string().min(1).max(128),
  hwmodel: z
    .string()
    .max(64)
    .regex(/^[\w .-]+$/),
  'x-nvidia-gpu-driver-version': z
    .string()
    .max(32)
    .regex(/^[\w.-]+$/)
    .optional(),
})

/**
 * Checks a verdict of NVIDIA's service: every token signed by its keys (ES384), within its dates, for our nonce; the
 * overall one positive and naming exactly the device tokens by digest; every device token for a different device.
 * @throws EvidenceRefused `gpu` with the failed check
 * @throws MalformedEvidence when the verdict or the key set cannot be parsed
 */
export async function checkGpuVerdict(
  verdict: unknown,
  jwks: unknown,
  expected: GpuExpectation,
): Promise<GpuVerdict> {
  const [[, overallText], deviceTexts] = readDocument(detachedSchema, verdict, DOCUMENT)
  const keys = readDocument(keySetSchema, jwks, "NVIDIA's key set")
  const overall = await readToken(overallText, keys, overallSchema, expected)
  const named = Object.entries(overall.submods)
  if (named.length !== expected.devices || named.length !== Object.keys(deviceTexts).length) {
    throw new EvidenceRefused('gpu', ['gpu_count'])
  }
  const devices = await Promise.all(
    named.map(async ([name, [, [, digest]]]) => {
      const text = Object.hasOwn(deviceTexts, name) ? deviceTexts[name] : undefined
      if (text === undefined || toHex(await sha256(utf8(text))) !== digest) {
        throw new EvidenceRefused('gpu', ['gpu_digest'])
      }
      return readToken(text, keys, deviceSchema, expected)
    }),
  )
  if (new Set(devices.map(({ ueid }) => ueid)).size !== devices.length) {
    throw new EvidenceRefused('gpu', ['gpu_distinct'])
  }
  return {
    devices: devices.length,
    models: [...new Set(devices.map(({ hwmodel }) => hwmodel))],
    drivers: [...new Set(devices.flatMap((one) => one['x-nvidia-gpu-driver-version'] ?? []))],
    endsAt: Math.min(...[overall, ...devices].map(({ exp }) => exp * 1000)),
  }
}

async function readToken<Claims extends { exp: number; nbf: number; eat_nonce: string }>(
  text: string,
  keys: KeySet,
  schema: z.ZodType<Claims>,
  { nonce, now }: GpuExpectation,
): Promise<Claims> {
  const jws = parseCompactJws(text, DOCUMENT)
  if (!(await isSigned(jws, keys))) throw new EvidenceRefused('gpu', ['gpu_signature'])
  const parsed = schema.safeParse(parseStrictJson(jws.payload, DOCUMENT))
  if (!parsed.success) throw new EvidenceRefused('gpu', ['gpu_claims'])
  const { exp, nbf, eat_nonce: bound } = parsed.data
  if (bound !== nonce) throw new EvidenceRefused('gpu', ['gpu_nonce'])
  if (exp * 1000 <= now || nbf * 1000 > now + PARTIES_DIFFER_MS) {
    throw new EvidenceRefused('gpu', ['gpu_dates'])
  }
  return parsed.data
}

/** The header may name one of NVIDIA's keys; nothing else in it is used. */
async function isSigned(jws: CompactJws, { keys }: KeySet): Promise<boolean> {
  const { alg, kid } = jws.header
  const [key, ...more] = keys.filter((one) => one.kid === kid)
  if (alg !== 'ES384' || key === undefined || more.length > 0) return false
  const { kty, crv, x, y } = key
  if (kty !== 'EC' || crv !== 'P-384' || x === undefined || y === undefined) return false
  return verifyJwsSignature(jws, { kty, crv, x, y }, 'ES384')
}
