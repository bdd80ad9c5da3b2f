import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

/** Where Debian and others have it; undefined where it is not installed, and then tests that need it are skipped. */
export const CHROMIUM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path))

/** A headless browser of its own. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM ?? '',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
}
