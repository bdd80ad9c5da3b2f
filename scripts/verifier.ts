import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildVerifierPage } from '../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/** Writes the verifier page to dist/verifier.html and prints its digest, as `release sign-manifest --verifier` records it. */
const page = await buildVerifierPage(join(PROJECT_DIR, 'src'))
mkdirSync(join(PROJECT_DIR, 'dist'), { recursive: true })
const path = join(PROJECT_DIR, 'dist/verifier.html')
writeFileSync(path, page)
console.log(`${createHash('sha256').update(page).digest('hex')}  dist/verifier.html`)
