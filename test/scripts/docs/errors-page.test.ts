import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorsPage } from '../../../scripts/docs/errors-page.ts'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'

/** A page without what the formatter may add to align its table. */
const plain = (page: string) => page.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')

test('docs/errors.md is what the code says ("npm run docs" writes it)', () => {
  const page = readFileSync(join(PROJECT_DIR, 'docs/errors.md'), 'utf8')
  expect(plain(page)).toBe(plain(errorsPage()))
})
