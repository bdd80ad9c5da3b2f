import type { ClientEnd, PumpedEnd } from './open-stream.ts'

/** The source of the chunks that the daemon writes. Its methods fail when the call is ended. */
export interface ChunkSource {
  /**
   * Waits for the first chunk.
   * @returns whether there is one; the daemon knows why where there is none
   * @throws unknown where the daemon is lost, or the call was ended
   */
  begin(): Promise<boolean>
  /** Opens a client's end to which the runtime moves the chunks. */
  pumped(onDisconnect: () => void): Promise<PumpedEnd>
  /**
   * Passes all chunks on. Resolves once the client's end has taken them.
   * @throws unknown when either side fails, or the call was ended
   */
  passTo(client: ClientEnd): Promise<void>
  /**
   * The daemon's record of the stream in JSON, where the daemon sends it by itself: at the end of the chunks, or after they
   * were cut. Empty where it is too large to be sent.
   */
  record(): Promise<string | undefined>
}
