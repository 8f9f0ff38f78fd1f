export declare const ANSWER_TIMEOUT_MS: 3000;
export declare const BACK_OFF_MS: readonly number[];
export declare const JITTER: number;

export type Phase = 'idle' | 'submitting' | 'unknown' | 'submitted' | 'refused';
export type Todo = 'rest' | 'send' | 'ask';

/** One business intent: stored before the first byte is sent. */
export interface Intent {
    phase: Phase;
    /** Why it was refused; with the phase `refused` only. */
    code?: string;
    task_id: string;
    student_id: string;
    submit_version: number;
    client_id: string;
    /** Which intent of this person it is, from 1. */
    ordinal: number;
    content: string;
}

export type ClientEvent =
    | { type: 'press'; content: string }
    | { type: 'no_answer' }
    | { type: 'not_yet' }
    | { type: 'never_arrived' }
    | { type: 'confirmed' }
    | { type: 'refused'; code: string };

/** A submission as the server answers it. */
export interface SubmissionRow {
    id: string;
    task_id: string;
    student_id: string;
    submit_version: number;
    content: string;
    /** RFC 3339, UTC. */
    created_at: string;
}

export interface SubmissionState {
    phase: Phase;
    code?: string;
    content: string;
    key: string;
    /** What counts, once it is known. */
    submission?: SubmissionRow;
    /** Nobody is signed in any more: sign in, set `client.token`, then `wake()`. */
    hurdle?: 'signed-out';
}

type MaybePromise<T> = T | Promise<T>;

export interface StorageAdapter {
    get(name: string): MaybePromise<string | null | undefined>;
    set(name: string, value: string): MaybePromise<void>;
    remove(name: string): MaybePromise<void>;
}

export interface ClockAdapter {
    /** Milliseconds. */
    now(): number;
    setTimeout(run: () => void, ms: number): unknown;
    clearTimeout(timer: unknown): void;
}

/** The part of the web's `fetch` that is used; a mini-program wraps its own request function into it. */
export type FetchAdapter = (
    url: string,
    options: { method: string; headers: Record<string, string>; body?: string },
) => Promise<{ status: number; headers: { get(name: string): string | null }; text(): Promise<string> }>;

export interface ClientOptions {
    baseUrl: string;
    /** Made once for an installation and kept: 1 to 128 printable ASCII characters. */
    clientId: string;
    /** A bearer token; without it the `fetch` has to bring the identity, as a browser's does by its cookie. */
    token?: string;
    fetch?: FetchAdapter;
    storage?: StorageAdapter;
    clock?: ClockAdapter;
    /** Between 0 and 1, for the jitter. */
    random?: () => number;
    answerTimeoutMs?: number;
    backOffMs?: readonly number[];
}

export declare function taskSubmitKey(intent: Pick<Intent, 'task_id' | 'student_id' | 'submit_version' | 'client_id'> & { ordinal?: number }): string;
export declare function idleIntent(of: { taskId: string; studentId: string; submitVersion: number; clientId: string }): Intent;
export declare function applyEvent(intent: Intent, event: ClientEvent): { intent: Intent; todo: Todo };
export declare function resumeIntent(intent: Intent): { intent: Intent; todo: Todo };
export declare function memoryStorage(): StorageAdapter;
export declare function readRetryAfter(value: string | null, now: number): number;

export declare class YiciClient {
    constructor(options: ClientOptions);
    token?: string;
    open(of: { taskId: string; studentId: string; submitVersion: number }): Promise<Submission>;
}

export declare class Submission {
    private constructor();
    readonly state: SubmissionState;
    readonly key: string;
    subscribe(listener: (state: SubmissionState) => void): () => void;
    press(content: string): Promise<void>;
    seen(): void;
    wake(): Promise<void>;
    follow(): Promise<void>;
    close(): void;
}
