import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'
import { errorsPage } from './docs/errors-page.ts'

/** `npm run docs`: writes the documentation pages that are generated from code. */
writeFileSync(join(PROJECT_DIR, 'docs/errors.md'), errorsPage())
