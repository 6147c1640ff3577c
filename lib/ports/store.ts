/**
 * The store: immutable objects under names, where everything large lives.
 *
 * Obligations: `create` is atomic and durable before it returns; an object never changes; `list` and `read` see
 * every object whose `create` returned (strong consistency). Names are `/`-separated, `[A-Za-z0-9._=-]` a part.
 * A missing answer is thrown as `UNKNOWN_RESULT` or `STORE_UNAVAILABLE`; the caller reads back.
 */
export interface Store {
  /** Creates the object unless its name is taken; never replaces. `chunks` are concatenated. */
  create(name: string, chunks: readonly Uint8Array[]): Promise<'created' | 'exists'>
  /** The whole object, or bytes `[start, end)` of it; null when there is none. */
  read(name: string, range?: { readonly start: number; readonly end: number }): Promise<Buffer | null>
  /** All objects whose name starts with `prefix`, in name order. */
  list(prefix: string): AsyncIterable<StoredObject>
  /** Deletes; a name that is absent is no error. */
  delete(names: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** An object as a listing shows it. */
export interface StoredObject {
  readonly name: string
  readonly bytes: number
}
