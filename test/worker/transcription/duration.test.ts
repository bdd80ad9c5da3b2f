import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../src/protocol/bytes.ts'
import { audioOf } from '../../../src/worker/transcription/audio-type.ts'
import { measureSeconds } from '../../../src/worker/transcription/duration.ts'
import { webmSeconds } from '../../../src/worker/transcription/webm-duration.ts'
import { everySample, recordedWebm, variableMp3, wav } from '../../support/audio-samples.ts'

const noPause = async () => {}

describe('a sample', () => {
  it.each(everySample().map((sample) => [sample.name, sample] as const))(
    '%s is typed by its bytes and measured',
    async (_name, { name, type, seconds, bytes }) => {
      const file = { bytes: copyBytes(bytes), name, type: undefined }
      const audio = audioOf(file)
      expect(audio.type).toBe(type)
      const measured = await measureSeconds(file.bytes, audio.container, noPause)
      expect(measured).toBeCloseTo(seconds, 1)
    },
  )
})

describe('a measurement', () => {
  it('ends without a result on a file that states no length', async () => {
    for (const container of ['wav', 'mp4', 'ogg', 'flac', 'webm', 'mpeg'] as const) {
      expect(await measureSeconds(new Uint8Array(5_000), container, noPause)).toBeUndefined()
      expect(await measureSeconds(new Uint8Array(), container, noPause)).toBeUndefined()
    }
  })

  it('lets others run while a long file is read', async () => {
    let pauses = 0
    const { bytes, seconds } = variableMp3(4_000)
    const measured = await measureSeconds(copyBytes(bytes), 'mpeg', async () => void pauses++)
    expect(measured).toBeCloseTo(seconds, 0)
    expect(pauses).toBeGreaterThan(5)
  })

  it('of a cut file is what its headers say or what is there, never an error', async () => {
    for (const { bytes } of everySample()) {
      const cut = copyBytes(bytes.subarray(0, bytes.length >> 1))
      const { container } = audioOf({ bytes: cut, name: '', type: undefined })
      const measured = await measureSeconds(cut, container, noPause)
      expect(measured === undefined || measured > 0).toBe(true)
    }
  })
})

describe('the walk over a WebM file', () => {
  it('finds the last block', async () => {
    expect(await webmSeconds(recordedWebm(31).bytes, noPause)).toBe(31)
  })

  it('ends on nonsense', async () => {
    expect(await webmSeconds(wav(1).bytes, noPause)).toBeUndefined()
    expect(await webmSeconds(new Uint8Array(1_000), noPause)).toBeUndefined()
    expect(await webmSeconds(new Uint8Array(1_000).fill(0xff), noPause)).toBeUndefined()
  })
})
