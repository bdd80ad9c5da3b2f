import { execFileSync } from 'node:child_process'
import { chmodSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TYPESCRIPT_NAME } from '../src/cli/build/plain-script.ts'
import { compileTree } from '../src/cli/build/compile-tree.ts'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/** Builds `lib`, which the npm package ships instead of `src`. npm runs this script before packing. */
const SOURCES = join(PROJECT_DIR, 'src')
const LIB = join(PROJECT_DIR, 'lib')

/** Code that is only needed to build this directory. */
const LEFT_OUT = ['cli/build', 'host/bundle-worker.js']

await compileTree(SOURCES, LIB)
for (const part of LEFT_OUT) rmSync(join(LIB, part), { recursive: true })
execFileSync('tsc', ['-p', 'tsconfig.declarations.json'], { cwd: PROJECT_DIR, stdio: 'inherit' })
for (const name of globSync('**/*.d.ts', { cwd: LIB })) {
  const path = join(LIB, name)
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(TYPESCRIPT_NAME, '.js'))
}
chmodSync(join(LIB, 'cli/main.js'), 0o755)
