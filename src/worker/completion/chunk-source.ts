import type { ClientEnd, PumpedEnd } from './open-stream.ts'

/** Where the chunks come from that the daemon writes. It fails when its call is ended. */
export interface ChunkSource {
  /**
   * Waits for the first chunk.
   * @returns whether there is one; the daemon knows why where there is none
   * @throws unknown where the daemon is lost, or the call was ended
   */
  begin(): Promise<boolean>
  /** A client's end to which the runtime moves the chunks. */
  pumped(onDisconnect: () => void): Promise<PumpedEnd>
  /**
   * Passes all chunks on. Resolves once they are taken.
   * @throws unknown when either side fails, or the call was ended
   */
  passTo(client: ClientEnd): Promise<void>
  /** The daemon's record of the stream in JSON, where it came with the end or comes since the chunks were cut; empty where it is too large. */
  record(): Promise<string | undefined>
}
