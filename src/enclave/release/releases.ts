import type { DaemonBoot, LocalRelease } from '../../protocol/boot.ts'
import type { LoadedConfig } from '../config/load-config.ts'
import type { Machine } from '../snp/machine.ts'
import { readFileRelease, resolveReleaseFiles } from './file-release.ts'
import { describeLocalBuild } from './local-build.ts'
import { adoptLocalRelease, makeLocalRelease } from './local-release.ts'
import type { Release } from './release.ts'

/** The source of the daemon's release: the files that the configuration names, else a temporary release. */
export interface Releases {
  /** @throws Error when a file cannot be used; the message names it */
  of(loaded: LoadedConfig): Promise<Release>
  /**
   * The state with which a restarted daemon continues as the same local stack; null when no temporary release was made.
   */
  exportForRestart(): Promise<LocalRelease | null>
}

/** @param now milliseconds */
export function createReleases(boot: DaemonBoot, machine: Machine, now: () => number): Releases {
  let local: Promise<Release> | undefined
  async function makeLocal(): Promise<Release> {
    if (boot.release !== null) return adoptLocalRelease(boot.release)
    return makeLocalRelease({
      build: await describeLocalBuild(boot.workerBundlePath),
      measure: (identityTag) => machine.measure(identityTag),
      now: new Date(now()),
    })
  }
  return {
    of({ config }) {
      const files = config.service.release
      if (files !== undefined) return readFileRelease(resolveReleaseFiles(files, boot.configPath))
      local ??= makeLocal()
      return local
    },
    async exportForRestart() {
      if (local === undefined) return null
      const { rootPublicJwk, manifestJws, bundleJws } = await local
      const jwk = { ...rootPublicJwk }
      return { rootPublicJwk: jwk, manifestJws, bundleJws, simulated: await machine.keep() }
    },
  }
}
