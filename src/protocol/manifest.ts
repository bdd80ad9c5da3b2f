import * as z from 'zod'

/**
 * The workload identity manifest: the contents of a release. It is signed once per release, so its tag, SHA-256 over
 * the JWS text, is the same for every instance of that release.
 */

export const MANIFEST_SCHEMA = 'workload-identity/v1'

/** `typ` of the JWS header; prevents a bundle or a receipt from being accepted as a manifest. */
export const MANIFEST_TYP = 'workload-identity+jwt'

const prefixedDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'not sha256:<64 lowercase hex>')

export const manifestSchema = z.looseObject({
  schema: z.literal(MANIFEST_SCHEMA),
  workload: z.string().min(1),
  version: z.string().min(1),
  image_digest: prefixedDigest,
  binary_digest: prefixedDigest,
  /** Digest of the release's verifier page; absent in manifests of earlier versions. */
  verifier_digest: prefixedDigest.optional(),
  /** Shaped on SLSA provenance: builder, source, commit, whether the build can be repeated. */
  build_metadata: z.record(z.string(), z.json()),
})

export type Manifest = z.output<typeof manifestSchema>
