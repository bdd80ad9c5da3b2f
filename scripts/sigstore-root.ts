import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { getTrustedRoot } from '@sigstore/tuf'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/**
 * Updates `src/enclave/provenance/trusted-root.ts`: the certificate authorities and logs of the public Sigstore
 * instance. They come from its TUF repository, whose signatures are verified from the root that `@sigstore/tuf` pins;
 * or, with `--from <file>`, from a `trusted_root.json` that was verified elsewhere. Review the changes before
 * committing them.
 */
const HEADER = `/**
 * Authorities and logs of the public Sigstore instance, pinned: build records are verified under these and nothing
 * that is fetched. Written by \`npm run sigstore-root\`; read the difference before you commit it.
 */
export const SIGSTORE_TRUSTED_ROOT: unknown = `

const { values } = parseArgs({ options: { from: { type: 'string' } } })
const root =
  values.from === undefined
    ? await getTrustedRoot({ cachePath: mkdtempSync(join(tmpdir(), 'sigstore-root-')) })
    : TrustedRoot.fromJSON(JSON.parse(readFileSync(values.from, 'utf8')))
const target = join(PROJECT_DIR, 'src/enclave/provenance/trusted-root.ts')
writeFileSync(target, `${HEADER}${JSON.stringify(TrustedRoot.toJSON(root), undefined, 2)}\n`)
execFileSync('oxfmt', [target], { stdio: 'inherit' })
