import { z } from 'zod'
import { signTrustBundle } from '../../src/enclave/release/sign-documents.ts'
import { makeSigningKey, type SigningKey } from '../../src/enclave/release/signing-key.ts'
import { fromUtf8 } from '../../src/protocol/bytes.ts'
import { parseCompactJws } from '../../src/protocol/compact-jws.ts'

/** Trust bundles (JWS) under one release root: that of a release, and two that an operator's router does not satisfy. */
export interface OperatorBundles {
  readonly rootJwk: SigningKey['publicJwk']
  readonly published: string
  readonly otherMeasurement: string
  readonly higherFloor: string
}

const bundleSchema = z
  .object({
    allowed_measurements: z.array(z.record(z.string(), z.json())),
    tcb_floor: z.record(z.string(), z.json()),
  })
  .catchall(z.json())

/** No firmware reaches it. */
const HIGHEST_TCB = { bootloader: 255, tee: 255, snp: 255, microcode: 255 }

/** Signs the content of a bundle under a root of its own, as it is and changed. */
export async function makeOperatorBundles(bundleJws: string): Promise<OperatorBundles> {
  const { payload } = parseCompactJws(bundleJws, 'trust bundle')
  const published = bundleSchema.parse(JSON.parse(fromUtf8(payload)))
  const [allowed] = published.allowed_measurements
  const root = await makeSigningKey({ extractable: false })
  const sign = (changes: object) => signTrustBundle({ ...published, ...changes }, root)
  return {
    rootJwk: root.publicJwk,
    published: await sign({}),
    otherMeasurement: await sign({
      allowed_measurements: [{ ...allowed, measurement: '00'.repeat(48) }],
    }),
    higherFloor: await sign({ tcb_floor: { ...published.tcb_floor, genoa: HIGHEST_TCB } }),
  }
}
