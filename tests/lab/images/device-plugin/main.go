// lab-device-plugin registers amd.com/gpu with the real kubelet, for GPUs that do not exist.
//
// Where the AMD plugin reads /sys/class/kfd, so does this one; in the lab a fixture tree is mounted there. It is a test
// double: it hands out device ids and no device nodes.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "amd.com/gpu"
	endpoint = "lab-amd-gpu.sock"
)

// gpus lists the KFD nodes of the tree that have SIMD units, as the AMD plugin counts them.
func gpus(sysfs string) []string {
	files, _ := filepath.Glob(filepath.Join(sysfs, "class/kfd/kfd/topology/nodes/*/properties"))
	sort.Strings(files)
	var ids []string
	for _, file := range files {
		if simdCount(file) > 0 {
			ids = append(ids, "gpu-"+filepath.Base(filepath.Dir(file)))
		}
	}
	return ids
}

func simdCount(file string) int {
	handle, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer handle.Close()
	count := 0
	for scanner := bufio.NewScanner(handle); scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), "simd_count ") {
			fmt.Sscanf(scanner.Text(), "simd_count %d", &count)
		}
	}
	return count
}

type plugin struct{ devices []*api.Device }

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"LAB_GPU_IDS": strings.Join(container.DevicesIDs, ",")},
		})
	}
	return answer, nil
}

func (p *plugin) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return grpc.DialContext(ctx, socket, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
}

// serve registers once and returns when the kubelet has removed the socket, which it does when it restarts.
func serve(directory string, devices []*api.Device) error {
	socket := filepath.Join(directory, endpoint)
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, &plugin{devices})
	go server.Serve(listener)

	connection, err := dial(filepath.Join(directory, "kubelet.sock"))
	if err != nil {
		return fmt.Errorf("kubelet.sock: %w", err)
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(context.Background(), &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource, Options: &api.DevicePluginOptions{},
	})
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	log.Printf("registered %d x %s", len(devices), resource)
	for {
		time.Sleep(2 * time.Second)
		if _, err := os.Stat(socket); err != nil {
			return nil
		}
	}
}

func main() {
	sysfs, directory := "/sys", "/var/lib/kubelet/device-plugins"
	if value := os.Getenv("LAB_SYSFS"); value != "" {
		sysfs = value
	}
	var devices []*api.Device
	for _, id := range gpus(sysfs) {
		devices = append(devices, &api.Device{ID: id, Health: api.Healthy})
	}
	for {
		if err := serve(directory, devices); err != nil {
			log.Print(err)
			time.Sleep(2 * time.Second)
		}
	}
}
