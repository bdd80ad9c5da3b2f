import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsolePage } from '../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/** Writes the console to dist/console.html, where a stack that starts from this checkout finds it. */
mkdirSync(join(PROJECT_DIR, 'dist'), { recursive: true })
writeFileSync(
  join(PROJECT_DIR, 'dist/console.html'),
  await buildConsolePage(join(PROJECT_DIR, 'src')),
)
