import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Beside the compiled program, or in a checkout, where `npm run build:console` writes it. */
const PLACES = ['../console.html', '../../dist/console.html'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/** The operator's console as one HTML file; undefined where none was built. */
export function readConsolePage(): string | undefined {
  const path = PLACES.find((place) => existsSync(place))
  return path === undefined ? undefined : readFileSync(path, 'utf8')
}
